# shellcheck shell=sh
# Runs a command beside a server of a script, which sources this file: the command has the script's input and its signals.

command=''

# The command has the signal too, or gets it here; the script ends its server after it.
on_signal() { # on_signal NAME STATUS
    [ -n "$command" ] || exit "$2"
    kill -s "$1" "$command" 2>/dev/null || :
}
trap 'on_signal INT 130' INT
trap 'on_signal TERM 143' TERM

# Returns the status of the command. A shell keeps SIGINT from what it starts beside itself, and waits for what it starts
# otherwise before it handles its own.
run_command() { # run_command COMMAND…
    exec 3<&0
    env --default-signal=INT,QUIT "$@" <&3 3<&- &
    command=$!
    status=0
    wait "$command" || status=$?
    # A signal ends the wait before the command.
    while kill -0 "$command" 2>/dev/null; do
        status=0
        wait "$command" || status=$?
    done
    return "$status"
}
