"""The record of speed: small workloads of one commit after the other, against fixed work."""
