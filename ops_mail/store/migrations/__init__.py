"""The migrations of the `ops_mail_*` tables, in order; applied by `ops_mail.store.migrate`."""
