-- An account for ops-mail in a schema that holds other tables too: it can touch the ops_mail_ tables and nothing else.
-- With the schema's name in place of `app`, then as with grants.sql:
--   sed 's/`app`/`yours`/' deploy/mysql/grants-shared-schema.sql | mysql -u root -p
--   ALTER USER 'ops_mail'@'%' IDENTIFIED BY '…' ACCOUNT UNLOCK;
--
-- Each table is named, because wildcards (`ops\_%`) work for schemas and not for tables. A table that is not there yet can be
-- granted as long as CREATE is among the privileges, and that lets `ops-mail migrate` create just these. Revoking from a grant
-- on the whole schema is no way: MariaDB has no partial revokes, and MySQL's take whole schemas only.

CREATE USER IF NOT EXISTS 'ops_mail'@'%' ACCOUNT LOCK;

GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON `app`.`ops_mail_alembic_version` TO 'ops_mail'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON `app`.`ops_mail_attachment` TO 'ops_mail'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON `app`.`ops_mail_attempt` TO 'ops_mail'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON `app`.`ops_mail_audit` TO 'ops_mail'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON `app`.`ops_mail_blob` TO 'ops_mail'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON `app`.`ops_mail_blob_chunk` TO 'ops_mail'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON `app`.`ops_mail_cursor` TO 'ops_mail'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON `app`.`ops_mail_daily` TO 'ops_mail'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON `app`.`ops_mail_instance` TO 'ops_mail'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON `app`.`ops_mail_job_run` TO 'ops_mail'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON `app`.`ops_mail_message` TO 'ops_mail'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON `app`.`ops_mail_notice` TO 'ops_mail'@'%';
