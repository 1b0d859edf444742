"""Values of the subject: jobs, media, transcripts."""
