"""Finds numbers in the output of programs, and compares them. A missing number is None and reaches no target."""

import re
import statistics


def after(words, text):
    """Returns the numbers that follow `words`, a regular expression, at the beginning of lines."""
    return [float(number) for number in re.findall(rf"^{words} *([0-9.]+)", text, re.MULTILINE)]


def median_after(words, text):
    return median(after(words, text))


def median(numbers):
    return statistics.median(numbers) if numbers else None


def quarters(numbers):
    """Returns the first and the third quartile."""
    return statistics.quantiles(numbers, n=4, method="inclusive")[::2] if len(numbers) > 1 else []


def ratio(a, b):
    return a / b if a is not None and b else None


def at_least(a, b):
    return a is not None and b is not None and a >= b


def at_most(a, b):
    return a is not None and b is not None and a <= b


def shown(number, form="g"):
    return "-" if number is None else f"{number:{form}}"


def first(pattern, text):
    """Returns the first group of the pattern's last match; an empty string if there is no match."""
    found = re.findall(pattern, text, re.MULTILINE)
    return found[-1] if found else ""


def number(text):
    try:
        return float(text)
    except ValueError:
        return None
