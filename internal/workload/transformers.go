package workload

import "fmt"

// attention returns the products of queries, keys and values, which have no parameters.
func attention(features, positions int) Layer {
	return Layer{Operations: 2 * int64(positions*positions) * int64(features)}
}

func bertBase() Workload {
	const features, vocabulary, positions = 768, 30522, 128
	w := Workload{
		Name:   "bert_base",
		Source: "Devlin et al., BERT: pre-training of deep bidirectional transformers, 2018, base, uncased, with pooler; 128 tokens",
		Layers: []Layer{Layer{Parameters: []Parameter{
			{"embeddings.word_embeddings.weight", []int{vocabulary, features}},
			{"embeddings.position_embeddings.weight", []int{512, features}},
			{"embeddings.token_type_embeddings.weight", []int{2, features}},
		}}.norm("embeddings.LayerNorm", features)},
	}

	for i := range 12 {
		name := fmt.Sprintf("encoder.layer.%d.", i)
		w.Layers = append(w.Layers,
			linear(name+"attention.self.query", features, features, positions),
			linear(name+"attention.self.key", features, features, positions),
			linear(name+"attention.self.value", features, features, positions),
			attention(features, positions),
			linear(name+"attention.output.dense", features, features, positions).norm(name+"attention.output.LayerNorm", features),
			linear(name+"intermediate.dense", features, 4*features, positions),
			linear(name+"output.dense", 4*features, features, positions).norm(name+"output.LayerNorm", features))
	}

	w.Layers = append(w.Layers, linear("pooler.dense", features, features, 1))
	return w
}

// projection is a fully connected layer of GPT-2, whose weights are transposed.
func projection(name string, in, out, positions int) Layer {
	return Layer{int64(in*out) * int64(positions), []Parameter{{name + ".weight", []int{in, out}}, {name + ".bias", []int{out}}}}
}

func gpt2Small() Workload {
	const features, vocabulary, positions = 768, 50257, 1024
	w := Workload{
		Name:   "gpt2_small",
		Source: "Radford et al., Language models are unsupervised multitask learners, 2019, the smallest; 1024 tokens",
		// The output has the weights of wte, whose gradient is final when backward ends.
		Layers: []Layer{{Parameters: []Parameter{{"wte.weight", []int{vocabulary, features}}, {"wpe.weight", []int{positions, features}}}}},
	}
	for i := range 12 {
		name := fmt.Sprintf("h.%d.", i)
		w.Layers = append(w.Layers,
			Layer{}.norm(name+"ln_1", features),
			projection(name+"attn.c_attn", features, 3*features, positions),
			attention(features, positions),
			projection(name+"attn.c_proj", features, features, positions),
			Layer{}.norm(name+"ln_2", features),
			projection(name+"mlp.c_fc", features, 4*features, positions),
			projection(name+"mlp.c_proj", 4*features, features, positions))
	}

	w.Layers = append(w.Layers, Layer{}.norm("ln_f", features), Layer{Operations: features * vocabulary * positions})
	return w
}
