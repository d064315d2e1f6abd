"""Our collapsed sparse GP with learned points, on everything at once."""

from streamgp_lab.baselines.collapsed import CollapsedGP


class Contender:
    """`each` and `together` are evaluations per round with k-means points and with moving ones."""

    def __init__(self, points=128, rounds=4, each=40, together=200):
        self.model = CollapsedGP(points, rounds, each, together)

    def learn(self, x, y, channel):
        self.model.fit(x, y)

    def predict(self, x, channel):
        return self.model.predict(x)
