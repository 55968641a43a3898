"""Write the report of a study as one self-contained HTML page."""

from bonas.report.page import check_report_path as check_report_path
from bonas.report.page import render_page as render_page
from bonas.report.page import write_report as write_report
from bonas.report.study_facts import TABLE_NOTE as TABLE_NOTE
