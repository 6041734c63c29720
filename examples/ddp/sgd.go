package main

// sgd is stochastic gradient descent with momentum, by torch's rule:
// velocity = momentum·velocity + gradient; parameter -= rate·velocity.
type sgd[F float] struct {
	rate, momentum F
	velocity       []F
}

// step moves the parameters against the gradients, which are unchanged.
func (s *sgd[F]) step(params, grads []F) {
	if s.velocity == nil {
		s.velocity = make([]F, len(params))
	}
	for i, g := range grads {
		s.velocity[i] = s.momentum*s.velocity[i] + g
		params[i] -= s.rate * s.velocity[i]
	}
}
