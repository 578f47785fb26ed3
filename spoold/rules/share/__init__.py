"""The shared directory itself: is it safe, does it have room, and who can use it?

mount_options  which mount options are unsafe; whether a node mounts as the doctor approved
checkup        the meaning of the doctor's figures of one machine
gathering      the meaning of the figures of several machines that ran trials together
remarks        the words for findings about a mount
verdict        safe with rename, safe with lock, or not safe
disk           is there room on the share?
sharing        who can use a spool, by owner, group and umask
"""
