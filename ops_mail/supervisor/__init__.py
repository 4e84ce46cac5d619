"""Tasks that must never silently end, and the one way in which the process ends."""

from ops_mail.supervisor.stopping import StopSwitch
from ops_mail.supervisor.supervisor import Supervisor
from ops_mail.supervisor.systemd import ServiceManager

__all__ = ["ServiceManager", "StopSwitch", "Supervisor"]
