# shellcheck shell=bash
# Sourced by MariaDB's own entrypoint after grants.sql: the account gets its password.
docker_process_sql <<SQL
ALTER USER 'ops_mail'@'%' IDENTIFIED BY '$(cat /run/secrets/database-password)' ACCOUNT UNLOCK;
SQL
