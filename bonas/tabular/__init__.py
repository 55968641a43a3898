"""Searches on tables of data: from a file to networks that are trained, compared, kept and predicted with."""
