"""The shared directory itself: is it safe, has it room, and who can use it?

    mount_options  which mount options are unsafe; whether a node mounts as the doctor approved
    checkup        what the doctor's figures of one machine mean
    company        what follows from who takes part: twins, machines of one name, one machine twice
    gathering      what the figures of several machines mean that made trials together
    remarks        how what is found out about a mount is said
    verdict        safe with rename, safe with lock, or not safe
    disk           is there room on the share?
    blame          what kept a node from beating: the share, or itself?
    sharing        who can use a spool, by owner, group and umask

Law: pure; figures go in, remarks in words come out.
"""
