"""Why a method wins or loses: probes that measure on features what the theory predicts."""
