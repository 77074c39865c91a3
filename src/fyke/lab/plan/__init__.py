"""How large a machine does a crawl need?

IRLbot's theorems (`fyke.lab.plan.model`) asked by a person who sizes a machine: `quantities` reads what they type
and writes figures as people read them, `question` says what can be asked, `planner` answers, `report` puts the
answer into words and a table, `figure` draws it. `fyke plan` is the one that calls; no crawl does.
"""
