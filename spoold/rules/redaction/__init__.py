"""What must not leave a worker's machine: secrets and tokens in the output of an attempt become `[redacted:NAME]`.

    spellings   how a value may be written: plain, base64, hex, and in quotes
    escapes     reads escaped text, of JSON, HTML, URLs, C and others, and knows where it stood
    sweep       masks what a finder finds in a stream of bytes
    exact       the finder of the secrets that an attempt was given
    tokens      the finder of well-known shapes of tokens; shapes: their table
    keys        private keys in PEM blocks
    lines       the patterns that the owner of a machine adds
    masking     all of them together, for streams, texts and JSON values
    scanning    all of them, to say where something stands that would be masked

Law: a stream is masked alike, however it is cut into pieces. A byte is held back only while it may still belong to
something that is masked.
"""
