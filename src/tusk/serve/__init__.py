"""A page on this machine: pictures and their points, types and their names, corrections by clicks; and a JSON API."""
