"""A pipeline whose runs ask a language model one question each."""

from pydantic import BaseModel

from holdfast import Context, LanguageModel, Pipeline, Question


class Mood(BaseModel):
    mood: str


asking = Pipeline("asking", input=str)


@asking.step
async def ask(request: str, ctx: Context) -> str:
    answer = await ctx.use(LanguageModel).ask(Question("How do they feel?", request), Mood, ctx)
    return answer.mood
