from datetime import date

import pytest

from todo import main


def test_add_and_list(tmp_path, capsys):
    file = str(tmp_path / "todo.json")
    assert main(["--file", file, "add", "buy milk"]) == 0
    assert main(["--file", file, "add", "call Ann"]) == 0
    main(["--file", file, "list"])
    assert capsys.readouterr().out == "1. [ ] buy milk\n2. [ ] call Ann\n"


def test_done(tmp_path, capsys):
    file = str(tmp_path / "todo.json")
    main(["--file", file, "add", "buy milk"])
    assert main(["--file", file, "done", "1"]) == 0
    main(["--file", file, "list"])
    assert capsys.readouterr().out == "1. [x] buy milk\n"


def test_done_with_a_wrong_number(tmp_path):
    file = str(tmp_path / "todo.json")
    assert main(["--file", file, "done", "3"]) == 1


def test_due_date_is_printed_after_the_title(tmp_path, capsys):
    file = str(tmp_path / "todo.json")
    main(["--file", file, "add", "buy milk", "--due", "2030-02-03"])
    main(["--file", file, "list"])
    assert capsys.readouterr().out == "1. [ ] buy milk 2030-02-03\n"


def test_overdue(tmp_path, capsys):
    file = str(tmp_path / "todo.json")
    main(["--file", file, "add", "buy milk", "--due", "2030-02-03"])
    main(["--file", file, "add", "call Ann"])
    main(["--file", file, "list", "--overdue"], today=date(2030, 2, 3))
    assert capsys.readouterr().out == ""
    main(["--file", file, "list", "--overdue"], today=date(2030, 2, 4))
    assert capsys.readouterr().out == "1. [ ] buy milk 2030-02-03\n"


def test_a_bad_date(tmp_path):
    with pytest.raises(SystemExit) as stopped:
        main(["--file", str(tmp_path / "todo.json"), "add", "buy milk", "--due", "tomorrow"])
    assert stopped.value.code == 2
