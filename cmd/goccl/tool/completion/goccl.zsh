#compdef goccl
# Completion of goccl for zsh, after compinit: source <(goccl completion zsh)
_goccl() {
	local line
	local -a found
	for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
		[[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done
	if (( $#found )); then
		_describe goccl found
	else
		compset -P '--*='
		_files
	fi
}
if [[ $funcstack[1] == _goccl ]]; then
	_goccl "$@" # loaded by compinit
else
	compdef _goccl goccl
fi
