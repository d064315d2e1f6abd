"""The laboratory of streamgp: experiments, baselines, races against other libraries, checks."""
