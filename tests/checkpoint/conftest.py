"""Puts this folder on the path: what the rooms' tests share is here."""
