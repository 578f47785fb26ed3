"""The shared directory itself: is it safe, has it room, and who can use it?

    mount_options       unsafe mount options; whether a node mounts as the doctor approved; the doctor's verdict
    trial_findings      what the doctor's figures mean, of one machine and of several together
    machine_identities  what follows from who takes part: twins, machines of one name, one machine twice
    remarks             how what is found out about a mount is said
    free_space          is there room on the share?
    permissions         who can use a spool, by owner, group and umask

Law: pure; figures go in, remarks in words come out.
"""
