from tests.integration.listener.conftest import (
    dovecot,
    free_port,
    mariadb,
    mariadb_address,
    mariadb_url,
    mysql,
    new_user,
)

__all__ = ["dovecot", "free_port", "mariadb", "mariadb_address", "mariadb_url", "mysql", "new_user"]
