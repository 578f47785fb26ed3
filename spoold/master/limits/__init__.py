"""What stands behind limits, rates, quotas, breakers and budgets.

    capacity         how much of each limit is free: usage, starts, half-open trials of quotas and breakers
    budget_accounts  what attempts cost, and what those that may run have reserved
    result_stream    results of attempts → the parts that decide by their cost

Law: a new leader is never more generous than the one before.
"""
