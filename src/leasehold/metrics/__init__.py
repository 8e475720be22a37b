"""What a monitoring system wants to know of a store: `leasehold metrics`.

- ``tally``     what is counted, as a question, and the answer
- ``text``      the answer in the text format that Prometheus reads
- ``commands``  `leasehold metrics`
"""
