# Completion of goccl for bash 3.2 or later: source <(goccl completion bash)
_goccl() {
	local word before=""
	[[ ${COMP_WORDS[COMP_CWORD]} == = || ${COMP_WORDS[COMP_CWORD - 1]} == = ]] && before="*=" # bash splits words there
	COMPREPLY=()
	while IFS=$'\t' read -r word _; do
		COMPREPLY+=("${word#$before}")
	done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _goccl goccl
