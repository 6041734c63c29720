package syncmodel

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// rules.txt lists every rule in the words of its model, with the file that implements it; a comment
// there names the rule.
func TestPage(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile("rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	in := map[string][2]string{} // by words: name and file
	for _, row := range regexp.MustCompile(`(?m)^  (\w+) +(\S+\.go)\n +(.+)$`).FindAllStringSubmatch(string(page), -1) {
		in[row[3]] = [2]string{row[1], row[2]}
	}
	var rules []string
	for r := nothing + 1; int(r) < len(ruleWords); r++ {
		rules = append(rules, ruleWords[r])
	}
	for _, r := range []tokenRule{storeBeforeWake, tokenIsLeft, kernelCompares, testAfterTake, wakersLive} {
		rules = append(rules, string(r))
	}
	for _, r := range roundRules {
		rules = append(rules, string(r))
	}
	for _, r := range lifeRules {
		rules = append(rules, string(r))
	}
	for _, r := range p2pRules {
		rules = append(rules, string(r))
	}
	for _, words := range rules {
		row, ok := in[words]
		if !ok {
			t.Errorf("rules.txt does not have the rule: %s", words)
			continue
		}
		delete(in, words)
		name, file := row[0], row[1]
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Error(err)
			continue
		}
		named := false
		for line := range strings.Lines(string(text)) {
			_, comment, ok := strings.Cut(line, "//")
			named = named || ok && regexp.MustCompile(`\b`+name+`\b`).MatchString(comment)
		}
		if !named {
			t.Errorf("no comment in %s names the rule %s", file, name)
		}
	}
	for words := range in {
		t.Errorf("no model has the rule of rules.txt: %s", words)
	}
}
