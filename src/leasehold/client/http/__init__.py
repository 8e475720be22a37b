"""The desk of a registrar that is reached over HTTP.

- ``address``    which server, and the access key that is shown to it
- ``exchange``   one request and its reply, and what it means when there is none
- ``call``       one item on its way, and how its caller hears of the outcome
- ``lane``       what may leave together, and what has to wait for what is ahead
- ``line``       the thread that puts waiting items into requests, and asks again what was lost
- ``growth``     waiting for the ledger to grow, with one request for all who do
- ``bells``      waking those who wait for leases, with one stream for all of them
- ``desk``       all of these, as a desk like any other
"""
