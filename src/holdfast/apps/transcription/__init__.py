"""From a recording to a transcript, in two stages: what the recording is, then what is said in it.

from holdfast.apps.transcription import metadata, transcription
"""

from holdfast.apps.transcription.pipelines import metadata, transcription

__all__ = ["metadata", "transcription"]
