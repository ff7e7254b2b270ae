"""The database: tables, transactions as functions, two executors behind one port, migrations.

tables.py        one set of tables                     sqlite.py, postgres.py   run functions over transactions
transaction.py   what a function sees                  migrations.py            brings a database up to date
<noun>.py        the statements and writes of a noun   paging.py                keyset cursors
"""
