"""Records and documents in Firestore. It keeps no runs."""
