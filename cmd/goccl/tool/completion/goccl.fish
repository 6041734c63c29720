# Completion of goccl for fish: goccl completion fish | source
function __goccl_complete
	set -l words (commandline -opc)
	set -l typed (commandline -ct)
	set -l found ($words[1] __complete $words[2..-1] "$typed" 2>/dev/null)
	if set -q found[1]
		printf '%s\n' $found
	else
		set -l flag (string match -r -- '^--[^=]*=' "$typed")
		for path in (__fish_complete_path (string replace -- "$flag" '' "$typed"))
			echo "$flag$path"
		end
	end
end
complete -c goccl -f -a '(__goccl_complete)'
