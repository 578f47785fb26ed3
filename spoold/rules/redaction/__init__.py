"""What must not leave a worker's machine: secrets and tokens in the output of an attempt become `[redacted:NAME]`.

    sweep       masks what a finder finds in a stream of bytes
    exact       the finder of the secrets that an attempt was given
    tokens      the finder of well-known shapes of tokens; shapes: their table
    keys        private keys in PEM blocks
    masking     all of them together, for streams, texts and JSON values
    scanning    all of them, to say where something stands that would be masked

Law: a stream is masked alike, however it is cut into pieces. A byte is held back only while it may still belong to
something that is masked.
"""
