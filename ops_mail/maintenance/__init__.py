"""What runs beside the listeners: the schema, the watch over the database, this instance's own row."""

from ops_mail.maintenance.database_watch import DatabaseWatch
from ops_mail.maintenance.instance_row import InstanceRow

__all__ = ["DatabaseWatch", "InstanceRow"]
