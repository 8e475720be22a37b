"""Certificates: a registrar's signed word that somebody holds a lease, checked by anyone, offline.

- ``certificate``  what one states, and what its times mean
- ``signing``      the format: JWS with EdDSA
- ``keys``         which public keys are trusted
- ``verifying``    when one is taken, and when not
- ``errors``       why not
"""
