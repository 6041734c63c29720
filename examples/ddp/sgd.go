package main

// sgd is stochastic gradient descent with momentum, by torch's rule:
// velocity = momentum·velocity + gradient; parameter -= rate·velocity.
type sgd[F float] struct {
	rate, momentum F
	velocity       []F
}

// step moves the parameters against the gradients, which are unchanged.
func (s *sgd[F]) step(m *mlp[F]) {
	if s.velocity == nil {
		s.velocity = make([]F, len(m.params))
	}
	velocity := s.velocity
	for _, l := range m.layers {
		for i, g := range l.grads {
			velocity[i] = s.momentum*velocity[i] + g
			l.params[i] -= s.rate * velocity[i]
		}
		velocity = velocity[len(l.grads):]
	}
}
