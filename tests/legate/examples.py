# Runs the examples of a page of the documentation. usage: examples.py PAGE.md.
# SPDX-License-Identifier: Apache-2.0
import doctest
import pathlib
import re
import sys

page = pathlib.Path(sys.argv[1])
# the end of a block is no output
text = re.sub("^```.*$", "", page.read_text(), flags=re.MULTILINE)
runner = doctest.DocTestRunner()
runner.run(doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0))
result = runner.summarize()
sys.exit(0 if result.failed == 0 and result.attempted >= text.count(">>> ") > 5 else 1)
