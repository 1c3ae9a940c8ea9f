"""The loop that commits, and the changes that wait for it in a process: see docs/design/group-commit.md.

`commit_round` is the loop. `judging` makes a version of many changes, and `waiting` is a change whose thread
waits. `sharing` brings the changes of a process's threads to a round, or hands them over to a courier
(`proposals`).
"""
