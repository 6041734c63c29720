package syncmodel

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rules.txt lists every rule in the words of its model, with the file that implements it; a comment
// there names the rule. A rule without a model has a mutant.
func TestPage(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile("rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	mutants, err := os.ReadFile(root + "/test/seeds/testdata/mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	var modelled []string
	for r := nothing + 1; int(r) < len(ruleWords); r++ {
		modelled = append(modelled, ruleWords[r])
	}
	for _, r := range []tokenRule{storeBeforeWake, tokenIsLeft, kernelCompares, testAfterTake, wakersLive} {
		modelled = append(modelled, string(r))
	}
	for _, r := range lifeRules {
		modelled = append(modelled, string(r))
	}

	for _, row := range regexp.MustCompile(`(?m)^  (\w+) +(\S+\.go)\n +(.+)$`).FindAllStringSubmatch(string(page), -1) {
		name, file, words := row[1], row[2], row[3]
		if i := slices.Index(modelled, words); i >= 0 {
			modelled = slices.Delete(modelled, i, i+1)
		} else if !regexp.MustCompile(`(?m)^of rule ` + name + `\b`).Match(mutants) {
			t.Errorf("the rule %s has no model, and no mutant: %s", name, words)
		}

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
	for _, words := range modelled {
		t.Errorf("rules.txt does not have the rule: %s", words)
	}
}
