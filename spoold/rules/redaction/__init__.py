"""What must not leave a worker's machine: secrets and tokens in the output of an attempt become `[redacted:NAME]`.

    known_secrets   the finder of the secrets that an attempt was given, in all their spellings
    token_shapes    the finders of what is secret by its shape: tokens, and private keys in PEM blocks
    stream_masking  masks what a finder finds in a stream of bytes
    masking         all finders together: for streams, texts and JSON values, and to say where something stands

Law: a stream is masked alike, however it is cut into pieces. A byte is held back only while it may still belong to
something that is masked.
"""
