"""Reading Protobuf request bodies, which kubectl's ``create`` commands send whatever the server offers.

Answers are JSON always (those clients accept both). The numbers of fields are data (``messages.txt``), taken from the
published ``generated.proto`` files of k8s.io/api by :mod:`stromboli.localcluster.protobuf.extracting`.
"""
