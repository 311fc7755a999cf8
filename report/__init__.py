"""Reports: what the warehouse knows as charts and tables on one page of HTML."""
