"""The agent loops that the leave desk can be played on, one module for each framework.

Each has ``run(host, turn, words, script)``: it runs one turn to its end over the tools of ``host``, with a model that
follows ``script``, and returns what was said. The tools are the same object on all of them.
"""
