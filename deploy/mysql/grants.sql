-- An account for ops-mail with a schema of its own: the recommended way, for MySQL 8.0+ and MariaDB 10.6+.
--   mysql -u root -p < deploy/mysql/grants.sql
-- and then, with a password of yours, since no password is shipped (until then the account is locked):
--   ALTER USER 'ops_mail'@'%' IDENTIFIED BY '…' ACCOUNT UNLOCK;
--   OPS_MAIL_DATABASE_URL=mysql+aiomysql://ops_mail:…@db.example.org/opsmail
-- (In the URL write %40 for @ and %25 for % in the password.)
-- `ops-mail check` tells whether the account may do what it needs, and that it cannot write foreign tables.
--
-- The schema's name has no underscore on purpose: in GRANT … ON `ops_mail`.* the underscore stands for any character, and
-- `ops\_mail`.* means ops_mail only where the server runs without partial_revokes. So neither would be right everywhere.
-- To share a schema with other tables instead: grants-shared-schema.sql.

CREATE DATABASE IF NOT EXISTS opsmail CHARACTER SET utf8mb4;

CREATE USER IF NOT EXISTS 'ops_mail'@'%' ACCOUNT LOCK;

-- To run: rows only. GET_LOCK, the guard of each mailbox, needs no privilege.
GRANT SELECT, INSERT, UPDATE, DELETE ON opsmail.* TO 'ops_mail'@'%';

-- To migrate. Leave it out, set OPS_MAIL_AUTO_MIGRATE=false and run `ops-mail migrate` as another account if the running
-- process must not be able to change its tables.
GRANT CREATE, ALTER, INDEX ON opsmail.* TO 'ops_mail'@'%';
