"""An app that is declared in code, with options of its own, for the command line to work with."""

from holdfast import Context, Holdfast, Pipeline, WorkerOptions


class Greeter:
    def greet(self, name: str) -> str:
        return f"Hello {name}"


greeting = Pipeline("greeting", input=str)


@greeting.step
async def greet(request: str, ctx: Context) -> str:
    return ctx.use(Greeter).greet(request)


app = Holdfast(
    "sqlite:///declared.db",
    [greeting],
    worker=WorkerOptions(concurrency=3),
    provide={Greeter: Greeter()},
)
