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
