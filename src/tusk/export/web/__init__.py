"""A model as a static page that runs in the browser."""
