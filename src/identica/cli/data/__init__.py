"""The commands of each data set: identica data NAME build | check | show."""
