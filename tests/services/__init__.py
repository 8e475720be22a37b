"""Real services for tests, and one place to ask for them.

A test that needs a service is marked with it, `@pytest.mark.service("postgres")`, and takes its fixture. Each
service is looked for in this order:

1. what an environment variable names, such as `LEASEHOLD_TEST_POSTGRES_URL`: used as it is, never started or
   stopped;
2. a private instance of programs that are installed, with its own data, port and password, run by a user
   without rights;
3. the same after installing the programs: Debian's packages as root, leaving no system service running, or a
   wheel that carries them.

Programs that are found but do not start are passed over. If nothing works, the test is skipped, and the
reason lists everything that was tried. With `CI=true` the test fails: there, a missing service is a mistake.

A private instance ends with the process that started it, even if that is killed. Its folder of data is then
left behind, among the temporary files.

- ``programs``  finds the programs of a service, and installs them
- ``user``      whom a service runs as, and what belongs to it
- ``process``   runs a service, which ends with us
- ``postgres``  PostgreSQL
- ``fixtures``  what tests take

A further service is a module like ``postgres`` and a fixture.
"""
