"""What runs beside the listeners: the schema, the watch over the database, this instance's own row, retention."""

from ops_mail.maintenance.database_watch import DatabaseWatch
from ops_mail.maintenance.instance_row import InstanceRow
from ops_mail.maintenance.retention import Retention

__all__ = ["DatabaseWatch", "InstanceRow", "Retention"]
