"""The system under test: loop, tools, approval, guard, context, finish, planning."""
