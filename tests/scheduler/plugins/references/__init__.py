"""Every filter, score and vote of every plugin the slow way, and stories in which the array code is held against it.

A module here is written from the specification alone: one pod, one node, plain numbers, nothing kept from one question
to the next. What it may look at is ``telling.Told``: the objects as the API server has them, and what has happened to
the pods since, in order. ``playing`` makes a session and a reference live through the same random story.
"""
