"""How large a machine does a crawl need?

`fyke plan` asks IRLbot's theorems (`fyke.lab.plan.model`) for a person who sizes a machine; no crawl does. `question`
reads what was asked, `planner` answers, `report` makes words and a table of the answer, and `figure` draws it.
`fyke.quantities` reads and writes the figures.
"""
